"""A platform and a launch as tests need them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from app.store import Launch, Platform, Store

STUDENT_LAUNCH = Launch(
    platform_id=1,
    deployment_id="1",
    sub="user-7",
    role="student",
    name="Ada Lovelace",
    is_test_user=False,
    context_id="course-3",
    context_title="Deep Learning",
    resource_link_id="link-9",
    resource_link_title="Week 1",
    activity_id=None,
    memberships_url="https://lms.example.org/members",
    lineitem_url="",
    deep_linking=None,
)


def platform(store: Store, client_id: str = "client-1", deployment_id: str = "1") -> Platform:
    at = "https://lms.example.org"
    urls = (f"{at}/auth", f"{at}/token", f"{at}/keys")
    added = store.lti.add_platform("Moodle", at, client_id, *urls, deployment_id=deployment_id)
    assert added
    return added


def launch(of: Platform, **changed: Any) -> Launch:
    return replace(STUDENT_LAUNCH, platform_id=of.id, **changed)
