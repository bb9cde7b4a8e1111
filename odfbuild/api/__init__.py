"""The Python interface: everything that the command line does, without text.

    from odfbuild import Project

    project = Project("flights")
    plan = project.plan(select=["us.bts.flights+"])
    if plan.has_changes:
        outcome = project.apply(plan)

Each call reads the project again, as a command does. The first call that needs Spark starts it; it
runs until `close()` or the end of `with Project(…) as project:`. Errors that a user can correct are
raised as `OdfbuildError` with place and help, several at once as `Errors`. If a single dataset
fails, the failure is part of the outcome and not raised.
"""

from odfbuild.api.project import Project

__all__ = ["Project"]
