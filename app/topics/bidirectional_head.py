"""One head without a mask, as in an encoder."""

from __future__ import annotations

from app.topics.requirements import NO_MASK, PLAIN_HEAD
from app.topics.single_head import BIDIRECTIONAL_HEAD
from app.topics.topic import Topic

TOPIC = Topic(
    "bidirectional-head",
    "head",
    lambda _architecture, _tokens: BIDIRECTIONAL_HEAD,
    (NO_MASK, *PLAIN_HEAD),
    runs=True,
    tables=(BIDIRECTIONAL_HEAD,),
)
