# Each host downloads Tart itself; macfleet uploads the kubelet from this machine.
# `macfleet artifacts lock` writes the digests.
artifact "tart" {
  version = "2.32.1"
  source  = "https://artifacts.acme.dev/tart-2.32.1.tar.gz"
  fetch   = "host"
  sha256  = "8cddcd69ec9da0d78993a11bc7c7b35f2d7cbd845c2d8c5b743063e8370f2c21"
  size    = 7196
}

artifact "tart_kubelet" {
  version = "0.4.0"
  source  = "dist/tart-kubelet-darwin-arm64"
  fetch   = "push"
  sha256  = "3df6f916836b284ecda456e340187affda22e0a9e99605afa6add98fdfd65fa2"
  size    = 85
}

# macfleet artifacts build tailscale@1.102.5 makes this archive from Tailscale's source.
artifact "tailscale" {
  version = "1.102.5"
  source  = "dist/tailscale-1.102.5-darwin-arm64.tar.gz"
  fetch   = "push"
  sha256  = "0b29ea2e18c4e851bc249afe4f4006c848b068a24329f73151eb29081fd70fbd"
  size    = 3100
}

artifact "node_exporter" {
  version = "1.12.1"
  source  = "https://github.com/prometheus/node_exporter/releases/download/v1.12.1/node_exporter-1.12.1.darwin-arm64.tar.gz"
  fetch   = "host"
  sha256  = "0fa01b1bae1b94491665b6bd5e5d0e137cda322e34e28e7f11c7a03f3c8e9d36"
  size    = 3612
}

# Every fleet inherits these; a fleet overrides them field by field. Passwordless
# sudo needs no block: every fleet has it.
defaults {
  os = "Tahoe"

  hostname {}
  power {}
  auto_login {}

  tailscale { # both have an effect only while the tailnet is enabled
    artifact = artifact.tailscale
  }

  node_exporter {
    artifact = artifact.node_exporter
  }

  tart {
    artifact = artifact.tart
  }

  tart_kubelet {
    artifact = artifact.tart_kubelet
    max_pods = 3

    reserve {
      cpu    = 2
      memory = "2Gi"
    }
  }
}

fleet "macos" {
  group "m2" {
    type     = "M2-L"
    replicas = 2
  }
}

fleet "runners" {
  group "m2" {
    type     = "M2-L"
    replicas = var.runners
  }

  # What customers' virtual machines may not reach.
  vm_firewall {
    anchor     = "acme.runners"
    vm_sources = ["192.168.64.0/22"]
    block      = ["10.0.0.0/8", "172.16.0.0/12", "169.254.0.0/16"]
  }

  rollout {                 # how a run changes hosts that do work: docs/rollout.md
    max_unavailable = "30%" # of the Ready hosts, rounded down, at least one
    canary          = 1     # changed first, and alone
    failure_budget  = 1     # failed hosts that do not stop the others
  }
}

# A builder bakes images of virtual machines: GitHub's runner takes jobs there, and its
# kubelet keeps virtual machines that belong to no Pod.
fleet "builders" {
  group "m2" {
    type     = "M2-L"
    replicas = 2
  }

  tart_kubelet {
    labels = { "acme.com/bakes-images" = "true" }
  }

  github_runner {
    app          = github_app.builders
    organization = "acme"
    labels       = ["vm-image-builder-${env.name}"] # jobs of one environment never run in another
    min_version  = "2.336.0"
  }
}
