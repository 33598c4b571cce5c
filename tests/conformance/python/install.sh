#!/bin/sh
# Prints the path of a Python that has the official client, installing it into
# build/ on first use, once per version of requirements.txt. Progress goes to
# stderr.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
builds=$here/../../../build
digest() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }
version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
final=$builds/python-client-$version-$(digest <"$here/requirements.txt" | cut -c1-12)
if [ ! -d "$final" ]; then
    mkdir -p "$builds"
    staging=$(mktemp -d "$builds/staging.XXXXXX")
    trap 'rm -rf "$staging"' EXIT
    echo "python client: installing into build/, once" >&2
    python3 -m venv "$staging" >&2
    "$staging/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
        --requirement "$here/requirements.txt" >&2
    # A run beside this one may have been faster.
    [ -d "$final" ] || mv "$staging" "$final"
fi
printf '%s\n' "$final/bin/python"
