# Sourced by examples/demo.sh and tests/run.sh: what is needed to build and test, as Debian 12 packages.

build_packages="build-essential meson ninja-build pkg-config libuv1-dev libxxhash-dev libcli11-dev"
test_packages="catch2 clang-format cmake python3"

# Installs those of the given packages that are missing, and says which.
ensure_packages() {
    local missing="" package
    for package in "$@"; do
        dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing="$missing $package"
    done
    [ -z "$missing" ] && return
    echo "Installing Debian packages:$missing"
    local as_root=""
    if [ "$(id -u)" != 0 ]; then
        as_root="sudo"
        command -v sudo >/dev/null || {
            echo "Neither root nor sudo: please have those packages installed." >&2
            return 1
        }
    fi
    $as_root apt-get update -q >/dev/null
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing >/dev/null
}

# configure DIR OPTIONS...: sets up a build folder once.
configure() {
    local folder=$1
    shift
    [ -f "$folder/build.ninja" ] && return
    echo "Configuring $folder"
    meson setup "$folder" "$@" >"$folder.log" 2>&1 || {
        cat "$folder.log"
        return 1
    }
}
