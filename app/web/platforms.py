"""/platforms, for operators: the learning platforms that may open the app, and how one registers itself."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from app.lti.registration import MAX_URL, RegistrationError, add_by_hand, register, tool_addresses
from app.store import AuditAction, Teacher
from app.translation import gettext as _
from app.web.shared.cookies import SECRET_COOKIE, redirect_with_secret
from app.web.shared.forms import MAX_TEXT, FormDep
from app.web.shared.permissions import Operator, valid_id
from app.web.shared.services import Services, ServicesDep, StoreDep
from app.web.shared.templating import render
from app.web.shared.threads import in_threads
from app.web.shared.urls import public_url, url_for

router = APIRouter(include_in_schema=False)

_FIELDS = (
    "name",
    "issuer",
    "client_id",
    "authorization_url",
    "token_url",
    "keys_url",
    "token_audience",
    "deployment_id",
)
_NOTHING_TYPED = dict.fromkeys(_FIELDS, "")


@router.get("/platforms")
def show_platforms(request: Request, services: ServicesDep, teacher: Operator, done: str = "") -> Response:
    return _platforms(request, services, teacher, done=done)


@router.post("/platforms")
def add_platform(request: Request, services: ServicesDep, teacher: Operator, form: FormDep) -> Response:
    """Register a platform by hand."""
    store, typed = services.store, {name: form.single_line(name, MAX_URL) for name in _FIELDS}
    try:
        with store.transaction():
            platform = add_by_hand(store, typed)
            store.audit_log.record(teacher, AuditAction.PLATFORM_ADDED, detail=str(platform.id))
    except RegistrationError as problem:
        return _platforms(request, services, teacher, 422, typed=typed, problem=str(problem))
    return RedirectResponse(url_for("show_platforms", done="added"), 303)


@router.post("/platforms/link")
def make_registration_link(request: Request, store: StoreDep, _teacher: Operator) -> Response:
    """Make a registration link, and redirect to the page, which shows it."""
    here = url_for("show_platforms")
    return redirect_with_secret(request, here, store.people.add_link("platform"), here)


@router.post("/platforms/{platform_id:int}/confirm")
def confirm_deployment(store: StoreDep, teacher: Operator, form: FormDep, platform_id: int) -> Response:
    """Let people in from a deployment of a platform that has waited for it."""
    deployment_id = form.raw("deployment", MAX_URL)
    waiting = [each.deployment_id for each in store.lti.deployments() if each.platform_id == valid_id(platform_id)]
    if deployment_id not in waiting:
        raise HTTPException(404)
    with store.audit_log.recording(teacher, AuditAction.DEPLOYMENT_CONFIRMED, detail=str(platform_id)):
        store.lti.confirm_deployment(platform_id, deployment_id)
    return RedirectResponse(url_for("show_platforms", done="confirmed"), 303)


@router.post("/platforms/{platform_id:int}/remove")
def remove_platform(store: StoreDep, teacher: Operator, platform_id: int) -> Response:
    """Forget a platform; courses, students and their work stay."""
    platform = store.lti.platform(valid_id(platform_id))
    if platform is None:
        raise HTTPException(404)
    with store.audit_log.recording(teacher, AuditAction.PLATFORM_REMOVED, detail=str(platform_id)):
        store.lti.remove_platform(platform)
    return RedirectResponse(url_for("show_platforms", done="removed"), 303)


def _platforms(
    request: Request,
    services: Services,
    teacher: Teacher,
    status: int = 200,
    *,
    typed: dict[str, str] = _NOTHING_TYPED,
    problem: str = "",
    done: str = "",
) -> Response:
    store, address = services.store, public_url(request, services.settings)
    token = request.cookies.get(SECRET_COOKIE, "")
    has_link = bool(token) and store.people.find_link(token, ("platform",)) is not None
    return render(
        "platforms/platforms.html",
        status=status,
        teacher=teacher,
        platforms=store.lti.platforms(),
        deployments=store.lti.deployments(),
        addresses=tool_addresses(address),
        is_public=bool(services.settings.address),
        link=address + url_for("register_platform", token=token) if has_link else "",
        typed=typed,
        problem=problem,
        done=done,
    )


# What a platform opens to register itself


@router.get("/lti/register/{token}")
@in_threads("lti")
def register_platform(
    request: Request, services: ServicesDep, token: str, openid_configuration: str = "", registration_token: str = ""
) -> Response:
    """Register with the platform that opened the link, which then works no more."""
    store, link = services.store, services.store.people.find_link(token, ("platform",))
    if link is None:
        sentence = _("This registration link has been used, or has expired. An operator makes a new one.")
        raise HTTPException(404, sentence)
    if not openid_configuration:
        return render("platforms/registration.html", platform=None)
    tool, settings = tool_addresses(public_url(request, services.settings)), services.settings
    secret = registration_token if registration_token.isascii() and registration_token.isprintable() else ""
    if not store.people.use_link(link):
        raise HTTPException(404)
    try:
        platform = register(
            store, tool, openid_configuration[:MAX_TEXT], secret[:MAX_TEXT], allow_private=settings.lti_private
        )
    except ValueError:
        store.people.restore_link(link)  # so that the administrator can try again
        raise
    store.audit_log.record("nobody", AuditAction.PLATFORM_ADDED, detail=str(platform.id))
    return render("platforms/registration.html", platform=platform)
