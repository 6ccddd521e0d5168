#!/usr/bin/env bash
# Boots systemd in namespaces of its own, over a copy-on-write view of this machine, and has it run one command there: systemd.sh WORLD COMMAND
# WORLD/in is /in in there, and WORLD/out is /out; all other files that it changes are gone afterwards. Called by unshare, as root.
set -euo pipefail
world=$1 command=$2

mount --make-rprivate /
mount -t tmpfs tmpfs "$world/base"
mkdir "$world"/base/{upper,work,root}
root=$world/base/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$world/base/upper,workdir=$world/base/work" "$root"
mkdir -p "$root/in" "$root/out"
mount --bind "$world/in" "$root/in"
mount --bind "$world/out" "$root/out"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"

# Nothing of this machine's own services starts in there: only the command, and what it starts.
cat >"$root/etc/systemd/system/the-command.service" <<-UNIT
	[Unit]
	DefaultDependencies=no
	[Service]
	Type=oneshot
	WorkingDirectory=/in
	Environment=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/in
	ExecStart=/bin/bash -c '(set -eux; $command); echo \$\$? >/out/ended; mv /out/ended /out/done'
	StandardOutput=file:/out/said
	StandardError=file:/out/said
UNIT
exec chroot "$root" env -i container=test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
	/lib/systemd/systemd --system --unit=the-command.service
