# One fleet of hosts for virtual machines: passwordless sudo (which every fleet
# has), names, power, a session at the screen, and a firewall around the virtual
# machines. Try it:
#
#     macfleet -C examples/host-core --sandbox apply
#     macfleet -C examples/host-core --sandbox sandbox inject HOST legacy-pf-block
#     macfleet -C examples/host-core --sandbox drift

macfleet {
  required_version = ">= 0.1.0"
  name             = "acme"
}

scaleway {
  zones       = ["fr-par-1"]
  pool_prefix = "pool-"
}

ssh {
  user        = "m1"
  private_key = secret("env://ACME_FLEET_KEY")

  timeouts {
    undo = "60s" # the host undoes a firewall that cuts the connection after this time
  }
}

defaults {
  os = "Tahoe"

  hostname {}
  power {}
  auto_login {}
}

fleet "runners" {
  group "m2" {
    type     = "M2-L"
    replicas = 3
  }

  vm_firewall {
    anchor     = "acme.runners"
    legacy     = ["tuist.runners"] # blocks of an earlier tool that macfleet replaces
    vm_sources = ["192.168.64.0/22"]
    block      = ["10.0.0.0/8", "172.16.0.0/12", "169.254.0.0/16"]
  }
}
