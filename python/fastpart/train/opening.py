"""Open the folder of a training."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core import parameters
from ..core.calls import called_well
from ..core.parameters import StrPath, shown
from ..core.parsing import damaged
from ..errors import GraphFormatError, ParameterError
from .data.learned_rows import written
from .learning.trainable import Make
from .models import build
from .models.scores import task_of
from .options import Options
from .plugged import MODELS, TYPED_MODELS, ModelSource, checked
from .registry import loaded, names, of
from .runs.beginning import refuse_other_model
from .runs.history import History
from .runs.run_folder import MARKER, RunFolder
from .runs.trained import TrainedModel

if TYPE_CHECKING:
    from .methods.edges.trained import TrainedEdges
    from .methods.embeddings.trained import TrainedEmbeddings
    from .methods.links.trained import TrainedLinks


@called_well
def open(
    run: StrPath, model: ModelSource | None = None
) -> TrainedModel | TrainedLinks | TrainedEdges | TrainedEmbeddings:
    """Open the folder of a training: its history, its weights, and what is needed to go on with it.

    A training that was interrupted can be opened, too. It has no test scores yet.

    Parameters
    ----------
    run : path
        The folder that was passed as ``out``.
    model : str or callable, optional
        The model, if it is your own and cannot be imported under the name that it had. Its weights must have the same
        shapes. Default: the model is imported again, so open only folders that you trust.

    Returns
    -------
    TrainedModel, TrainedLinks, TrainedEdges or TrainedEmbeddings
        As the method returns it, with the weights of the best epoch so far.

    Raises
    ------
    ParameterError
        The folder holds no training, or the model cannot be imported or has other weights.
    GraphFormatError
        The list of the folder or the checkpoint is damaged.

    Examples
    --------
    >>> import numpy as np, fastpart as fp, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> ring = np.array([[i, (i + 1) % 12] for i in range(12)])
    >>> labels = np.arange(12) // 6
    >>> splits = {"train": [0, 3, 6, 9], "val": [1, 7], "test": [2, 8]}
    >>> stored = fp.VertexPartition(labels, k=2).save(
    ...     f"{folder}/parts", graph=ring, features=np.eye(2, dtype=np.float32)[labels], labels=labels, splits=splits
    ... )
    >>> _ = fp.train.full(f"{folder}/parts", epochs=20, out=f"{folder}/run")
    >>> trained = fp.train.open(f"{folder}/run")
    >>> trained.summary["test_accuracy"]
    1.0
    >>> trained.predict(f"{folder}/parts")
    array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
    >>> len(trained.resume(epochs=30).history)
    30
    """
    folder = RunFolder(parameters.path("run", run))
    path, content = folder.path, folder.content
    if not content or not folder.has_checkpoint:
        raise ParameterError(f"run: {shown(path)} holds no training{_remedy(folder)}")
    with damaged(path / MARKER, "not the list of a training"):
        method = content["must_agree"]["method"]
        _ = content["may_change"]
        try:
            options = Options.of_stored(content["options"])
        except ParameterError as error:
            raise ValueError(error) from None  # a FastpartError would not name the file
        options = replace(options, model=checked(model) if model is not None else _found(options.model, path))
        task = None if content["task"] is None else task_of(content["task"])
    if task is None:
        raise ParameterError(
            f"run: {shown(path)} holds a training that has not ended. Repeat its call with resume=True"
        )
    how = content["must_agree"]["how"]
    if method not in names():
        raise GraphFormatError(
            f"{shown(path / MARKER)}: trained with the method {method!r}, which is not known here. Import the package "
            "that registers it"
        )
    known = of(method)
    make: Make = loaded(known.network)(how) if known.network else build
    own = options.model not in {**MODELS, **TYPED_MODELS}
    try:
        with nullcontext() if own else damaged(path / MARKER, "not the list of a training"):
            refuse_other_model(folder, lambda: make(task, options))
    except ParameterError as error:
        if model is not None:
            raise
        if not own:
            raise GraphFormatError(f"{shown(path / MARKER)}: not the list of a training ({error})") from None
        raise ParameterError(f"{error}. Pass the model: fastpart.train.open(run, model=...)") from None
    history = History(method, options, folder, resume=True)
    best = next((row for row in history.rows if row["epoch"] == history.best_epoch), {})
    scores = {name: value for name, value in best.items() if name.startswith("val_") and value is not None}
    trained = TrainedModel._of_history(task, history, scores)
    trained = replace(trained, summary=content.get("summary") or trained.summary)
    if task.learned:
        with suppress(FileNotFoundError):  # they are written when the training ends
            trained = replace(trained, learned=written(path, task.learned))
    return loaded(known.result)(trained, how) if known.result else trained


def _remedy(folder: RunFolder) -> str:
    """Return what to do about a folder without the list."""
    if folder.has_checkpoint:
        return f" that can be opened: it has no {MARKER}. Repeat the call that made it with resume=True, which adds it"
    return ". Pass the folder that was out= of a training"


def _found(model: Any, run: Path) -> Any:
    """Return the path of a model. That of a notebook moves with the folder."""
    file, _, name = model.rpartition(":")
    moved = run / Path(file).name
    return f"{moved}:{name}" if file.endswith(".py") and not Path(file).exists() and moved.exists() else model
