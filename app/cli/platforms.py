"""The command `platforms`: the learning platforms that may open the app by LTI 1.3."""

from __future__ import annotations

import argparse

from app.addresses import url_here
from app.lti.keys import rotate
from app.lti.registration import MAX_URL, RegistrationError, add_by_hand, tool_addresses
from app.names import clean_line
from app.store import AuditAction, Platform, Store
from app.translation import gettext as _

from .database import open_store
from .terminal import Commands, InputError, print_table, read_settings, whole_number

_TYPED = {
    "name": "name",
    "issuer": "issuer",
    "client_id": "client-id",
    "authorization_url": "authorization",
    "token_url": "token",
    "keys_url": "keys",
    "token_audience": "audience",
    "deployment_id": "deployment",
}  # the options of `add`, by field


def add_to(commands: Commands) -> None:
    """Add the command `platforms [list|link|add|confirm|remove|rotate] [NUMBER]`, which has no --json."""
    platforms = commands.add(
        "platforms",
        _manage_platforms,
        _("Register learning platforms, such as Moodle, that open the app from their courses."),
        printable=False,
    )
    actions = ("list", "link", "add", "confirm", "remove", "rotate")
    platforms.add_argument(
        "action",
        metavar="|".join(actions),
        nargs="?",
        default="list",
        choices=actions,
        help=_("what is registered (default); a registration link; add by hand; confirm a deployment; …; new keys"),
    )
    platforms.add_argument("number", metavar="NUMBER", nargs="?", help=_("with confirm and remove: which platform"))
    for option in _TYPED.values():
        platforms.add_argument(f"--{option}", default="", help=_("with add, as the platform says it"))


def _manage_platforms(parsed: argparse.Namespace) -> None:
    settings = read_settings()
    address = settings.public_url(url_here(settings.host, settings.port))
    with open_store(settings) as store:
        if parsed.action == "list":
            _print_platforms(store, address)
        elif parsed.action == "link":
            print(_("Paste this link into the platform. It works once, within two days:"))
            print(f"{address}/lti/register/{store.people.add_link('platform')}")
        elif parsed.action == "rotate":
            rotate(store)
            print(_("The next key signs from now on."))
        elif parsed.action == "add":
            _add_platform(store, parsed)
        else:
            _change_platform(store, parsed)


def _print_platforms(store: Store, address: str) -> None:
    print_table([[name, url] for name, url in tool_addresses(address).items()])
    deployments = store.lti.deployments()
    rows = [["", _("platform"), _("issuer"), _("client ID"), _("deployments")]]
    for platform in store.lti.platforms():
        own = [each for each in deployments if each.platform_id == platform.id]
        shown = [each.deployment_id + ("" if each.confirmed else " " + _("(waiting)")) for each in own]
        rows.append([str(platform.id), platform.name, platform.issuer, platform.client_id, ", ".join(shown)])
    if len(rows) > 1:
        print()
        print_table(rows)


def _add_platform(store: Store, parsed: argparse.Namespace) -> None:
    typed = {name: getattr(parsed, option.replace("-", "_")) for name, option in _TYPED.items()}
    try:
        with store.transaction():
            platform = add_by_hand(store, {name: clean_line(text, MAX_URL) for name, text in typed.items()})
            store.audit_log.record("terminal", AuditAction.PLATFORM_ADDED, detail=str(platform.id))
    except RegistrationError as problem:
        raise InputError(str(problem)) from None
    print(_("{name} is registered as number {number}.").format(name=platform.name, number=platform.id))


def _change_platform(store: Store, parsed: argparse.Namespace) -> None:
    number = whole_number(parsed.number or "", "NUMBER")
    platform = store.lti.platform(number) if number < 2**31 else None
    if platform is None:
        raise InputError(_("There is no platform {number}: “platforms” lists them.").format(number=number))
    if parsed.action == "remove":
        with store.audit_log.recording("terminal", AuditAction.PLATFORM_REMOVED, detail=str(platform.id)):
            store.lti.remove_platform(platform)
        print(_("{name} is removed.").format(name=platform.name))
    else:
        _confirm_deployment(store, platform, parsed.deployment)


def _confirm_deployment(store: Store, platform: Platform, deployment_id: str) -> None:
    waiting = [each for each in store.lti.deployments() if each.platform_id == platform.id and not each.confirmed]
    if deployment_id not in [each.deployment_id for each in waiting]:
        raise InputError(_("Name a deployment that waits, with “--deployment ID”: “platforms” lists them."))
    with store.audit_log.recording("terminal", AuditAction.DEPLOYMENT_CONFIRMED, detail=str(platform.id)):
        store.lti.confirm_deployment(platform.id, deployment_id)
    print(_("The deployment {id} of {name} is confirmed.").format(id=deployment_id, name=platform.name))
