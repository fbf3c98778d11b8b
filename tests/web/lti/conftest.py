"""A platform whose course the app's teacher and student come from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI

from tests.helpers.lti_class import LtiClass, lti_class


@pytest.fixture
def there(new_app: FastAPI) -> Iterator[LtiClass]:
    with lti_class(new_app) as found:
        yield found
