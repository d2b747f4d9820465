# One Mac mini that existed before macfleet: it is adopted under its present name,
# and overrides one value. There is no cluster. Try it:
#
#     macfleet -C examples/adopt --sandbox apply
#     macfleet -C examples/adopt --sandbox explain acme-legacy-01

macfleet {
  name = "acme"
}

scaleway {
  zones       = ["fr-par-3"]
  pool_prefix = "pool-acme-"
}

ssh {
  private_key = secret("file://fleet-ssh/id_ed25519")
}

fleet "builders" {
  os = "Tahoe"
  group "m2" {
    type     = "M2-L"
    replicas = 1 # adopted hosts count
  }
  hostname {}
  power {}
}

host "acme-legacy-01" {
  server_id = "8f1c2a44-0d3b-4c1e-9a77-2b6f0e5d4c31"
  group     = fleet.builders.group.m2
  power {
    display_sleep = 10
  }
}
