"""The Python interface: everything that the command line does, without text.

    from odfbuild import Project

    project = Project("flights")
    plan = project.plan(select=["us.bts.flights+"])
    if plan.has_changes:
        outcome = project.apply(plan)

Methods read the project anew each time, as a command does. Spark is started by the first one that
needs it, and runs on until `close()` or the end of `with Project(…) as project:`. What a person did
wrong is raised as an `OdfbuildError` with its place and the way out, several at once as `Errors`; a
failure of a single dataset is part of the outcome and not raised.
"""

from odfbuild.api.project import Project

__all__ = ["Project"]
