#!/bin/sh
# Finds or installs the programs that tests start: a browser and, with the argument "all", the proxies of the slow tests.
# Ends with one line that says what to install if it can't.
set -u
scope=${1-}
log=.venv/test_programs.log

missing() { # as Debian's packages
  if [ "$scope" = all ]; then
    command -v nginx >/dev/null || echo nginx-light
    command -v caddy >/dev/null || echo caddy
  fi
  .venv/bin/playwright --version >/dev/null 2>&1 || echo libatomic1 # it drives the browser
  has_browser || echo chromium-headless-shell # which takes a fifth of the processor time of all of Chromium
}
has_browser() { .venv/bin/python -m simulation.browser >/dev/null 2>&1; }
apt() { $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" >>$log 2>&1; }

needed=$(missing | tr '\n' ' ')
[ -n "$needed" ] || exit 0
echo "Looking for what the tests need: ${needed% }"
: >$log
if [ "$(id -u)" = 0 ]; then sudo=; can_install=yes
elif sudo -n true 2>/dev/null; then sudo="sudo -n"; can_install=yes
else can_install=; fi
if [ -n "$can_install" ] && command -v apt-get >/dev/null; then
  apt update
  for package in $needed; do
    apt install --no-install-recommends "$package" # its font comes with it
  done
  has_browser || apt install --no-install-recommends chromium
fi
has_browser || .venv/bin/playwright install ${can_install:+--with-deps} --only-shell chromium >>$log 2>&1

needed=$(missing | tr '\n' ' ')
[ -n "$needed" ] || exit 0
echo "The tests need programs that couldn't be installed (why: $log). On Debian: sudo apt-get install ${needed% }" >&2
exit 2
