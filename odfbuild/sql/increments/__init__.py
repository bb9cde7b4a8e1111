"""How new records change a result without a look at the whole history, told from a plan.

The rules are written once. The engine asks them about the plan that Spark optimised, and a plan of
odfbuild about the one that `text_plan` makes of the text of a query.
"""
