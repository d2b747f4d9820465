# Builders: Macs that bake images of virtual machines in GitHub's workflows. Without
# a cluster; three-fleets has builders that are also Nodes. Try it:
#
#     macfleet -C examples/builders --sandbox apply
#     macfleet -C examples/builders --sandbox sandbox bake HOST
#     macfleet -C examples/builders --sandbox sandbox inject HOST local-network-denied

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
}

github_app "builders" {
  app_id          = secret("op://acme/BUILDERS/app-id")
  installation_id = secret("op://acme/BUILDERS/installation-id")
  private_key     = secret("op://acme/BUILDERS/private-key")
}

artifact "tart" {
  version = "2.32.1"
  source  = "https://artifacts.acme.dev/tart-2.32.1.tar.gz"
  fetch   = "host"
  sha256  = "8cddcd69ec9da0d78993a11bc7c7b35f2d7cbd845c2d8c5b743063e8370f2c21"
  size    = 7196
}

# The vendor's archive: macOS knows packer by its signature.
artifact "packer" {
  version = "1.15.4"
  source  = "https://artifacts.acme.dev/packer_1.15.4_darwin_arm64.zip"
  fetch   = "host"
  sha256  = "b83d24a084d3aa1544bfa5b89f2fc5f2d8d901514255c59d568904c0d30279a0"
  size    = 405
}

# Homebrew's installer, for hosts without it.
artifact "homebrew" {
  version = "6.0.18"
  source  = "https://artifacts.acme.dev/homebrew-6.0.18.sh"
  fetch   = "host"
  sha256  = "ef21f376bc63ef3358f76ab2bceaa954d7f38179ab92aaea9a6cd16ee258480f"
  size    = 4010
}

fleet "builders" {
  os = "Tahoe"

  group "m2" {
    type     = "M2-L"
    replicas = 2
  }

  hostname {}
  power {}
  system {}
  auto_login {}
  local_network {}

  build_tools {
    packer      = artifact.packer
    homebrew    = artifact.homebrew
    formulae    = ["crane"]
    cache       = "/opt/build-cache"
    environment = ["ACME_BUILD_ROOT=/opt/build-cache"]
  }

  tart {
    artifact = artifact.tart
  }

  disk {
    warn_below = 100
    delete     = ["bake-*"] # what cancelled jobs leave
    older_than = 48
  }

  github_runner {
    app          = github_app.builders
    organization = "acme"
    labels       = ["vm-image-builder"]
  }
}
