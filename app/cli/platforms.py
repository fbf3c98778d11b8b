"""The command `platforms`: which learning platforms may open the app, a link to register one, and new keys."""

from __future__ import annotations

import argparse

from app.addresses import url_here
from app.lti.keys import rotate
from app.lti.registration import tool_addresses
from app.store import Store
from app.translation import gettext as _

from .database import open_store
from .terminal import Commands, print_table, read_settings


def add_to(commands: Commands) -> None:
    """Add the command `platforms [list|link|rotate]`, which has no --json."""
    platforms = commands.add(
        "platforms",
        _manage_platforms,
        _("List the learning platforms, such as Moodle, that open the app, or make a link to register one."),
        printable=False,
    )
    platforms.add_argument(
        "action",
        metavar="list|link|rotate",
        nargs="?",
        default="list",
        choices=("list", "link", "rotate"),
        help=_("list them with the app’s addresses (default), print a registration link, or change the app’s keys"),
    )


def _manage_platforms(parsed: argparse.Namespace) -> None:
    settings = read_settings()
    address = settings.public_url(url_here(settings.host, settings.port))
    with open_store(settings) as store:
        if parsed.action == "link":
            print(_("Paste this link into the platform. It works once, within two days:"))
            print(f"{address}/lti/register/{store.people.add_link('platform')}")
        elif parsed.action == "rotate":
            rotate(store)
            print(_("The next key signs from now on."))
        else:
            _print_platforms(store, address)


def _print_platforms(store: Store, address: str) -> None:
    print_table([[name, url] for name, url in tool_addresses(address).items()])
    deployments = store.lti.deployments()
    rows = [[_("platform"), _("issuer"), _("client ID"), _("deployments")]]
    for platform in store.lti.platforms():
        own = [each for each in deployments if each.platform_id == platform.id]
        shown = [each.deployment_id + ("" if each.confirmed else " " + _("(waiting)")) for each in own]
        rows.append([platform.name, platform.issuer, platform.client_id, ", ".join(shown)])
    if len(rows) > 1:
        print()
        print_table(rows)
