"""pyinfra's version of the job; run in the folder of the inputs."""

from pyinfra import host
from pyinfra.operations import apt, files, server, systemd

for i in range(1, 6):
    files.directory(path=f"/opt/peer/d{i}", mode="755")
for i in range(1, 11):
    files.template(
        src=f"templates/app{i}.conf.j2", dest=f"/opt/peer/d1/app{i}.conf", mode="644", host=host.name
    )
for key, value in (("vm.swappiness", 10), ("net.core.somaxconn", 4096), ("fs.file-max", 2000000)):
    files.line(path="/etc/sysctl.d/90-peer.conf", line=f"^{key} .*$", replace=f"{key} = {value}")
apt.packages(packages=["procps"])
for i in range(1, 6):
    files.put(src=f"files/f{i}.bin", dest=f"/opt/peer/d2/f{i}.bin", mode="644")
files.put(src="files/big.bin", dest="/opt/peer/d3/big.bin", mode="644")
for i in range(1, 4):
    files.put(src=f"units/peer{i}.service", dest=f"/etc/systemd/system/peer{i}.service", mode="644")
for i in range(1, 4):
    systemd.service(service=f"peer{i}.service", running=True, enabled=True, daemon_reload=(i == 1))
server.user(user="peer", shell="/bin/bash", system=True, create_home=True)
files.put(src="files/peer.logrotate", dest="/etc/logrotate.d/peer", mode="644")
