"""One head without a mask, as in an encoder."""

from __future__ import annotations

from app.topics.requirements import all_of, require_no_mask, require_own_projections, require_scores_of_queries_and_keys
from app.topics.single_head import BIDIRECTIONAL_HEAD
from app.topics.topic import LevelSpec, Topic

TOPIC = Topic(
    "bidirectional-head",
    "head",
    lambda _architecture, _tokens: BIDIRECTIONAL_HEAD,
    all_of(require_no_mask, require_own_projections, require_scores_of_queries_and_keys),
    runnable_table=BIDIRECTIONAL_HEAD,
    tables=(BIDIRECTIONAL_HEAD,),
    levels=(
        LevelSpec(
            "bidirectional-head",
            "bidirectional-head",
            after=("single-head",),
            steps=(("queries", "weights", "output"),),
        ),
        LevelSpec(
            "bidirectional-head-letters",
            "bidirectional-head",
            after=("bidirectional-head", "single-head-letters"),
            steps=(("queries", "weights", "output"),),
        ),
    ),
)
