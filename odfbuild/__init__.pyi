"""The public names of odfbuild, for type checkers; `__init__.py` imports them when asked."""

from odfbuild.api import Project as Project
from odfbuild.api.dataset import Dataset as Dataset
from odfbuild.errors import BranchError as BranchError
from odfbuild.errors import ChainError as ChainError
from odfbuild.errors import CheckError as CheckError
from odfbuild.errors import EngineError as EngineError
from odfbuild.errors import EngineProblem as EngineProblem
from odfbuild.errors import EnvironmentProblem as EnvironmentProblem
from odfbuild.errors import Errors as Errors
from odfbuild.errors import GraphError as GraphError
from odfbuild.errors import IngestError as IngestError
from odfbuild.errors import IntegrityError as IntegrityError
from odfbuild.errors import Location as Location
from odfbuild.errors import OdfbuildError as OdfbuildError
from odfbuild.errors import PersonalDataError as PersonalDataError
from odfbuild.errors import PlanError as PlanError
from odfbuild.errors import ProjectError as ProjectError
from odfbuild.errors import QueryError as QueryError
from odfbuild.errors import RecordsError as RecordsError
from odfbuild.errors import RepositoryError as RepositoryError
from odfbuild.errors import StaleHeadError as StaleHeadError
from odfbuild.errors import TableError as TableError
from odfbuild.exchange.repositories.outcome import Transfer as Transfer
from odfbuild.exchange.repositories.outcome import TransferStatus as TransferStatus
from odfbuild.inspect.verify.check import Verdict as Verdict
from odfbuild.inspect.verify.finding import Finding as Finding
from odfbuild.plan.explain import Explanation as Explanation
from odfbuild.plan.graph.dag import Graph as Graph
from odfbuild.plan.model import Action as Action
from odfbuild.plan.model import ColumnEffect as ColumnEffect
from odfbuild.plan.model import DatasetPlan as DatasetPlan
from odfbuild.plan.model import EventChange as EventChange
from odfbuild.plan.model import Pending as Pending
from odfbuild.plan.model import Plan as Plan
from odfbuild.plan.model import Reason as Reason
from odfbuild.plan.model import ReasonCode as ReasonCode
from odfbuild.records.pin import Pin as Pin
from odfbuild.survey.outcome import ApplyOutcome as ApplyOutcome
from odfbuild.survey.outcome import DatasetOutcome as DatasetOutcome
from odfbuild.survey.outcome import Status as Status
from odfbuild.survey.outcome import TableOutcome as TableOutcome
from odfbuild.version import __version__ as __version__

__all__: list[str]
