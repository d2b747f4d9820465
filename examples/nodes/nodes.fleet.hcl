# Three fleets of Mac minis that are Nodes of a Kubernetes cluster: Macs for
# services, runners for customers' jobs, and builders that bake virtual machine
# images. Each Pod on them is one virtual machine. Try it, from nothing to Ready:
#
#     macfleet -C examples/nodes --sandbox init cluster
#     macfleet -C examples/nodes --sandbox apply
#     macfleet -C examples/nodes --sandbox hosts
#     macfleet -C examples/nodes --sandbox sandbox run -- kubectl get nodes

macfleet {
  required_version = ">= 0.1.0"
  name             = "acme"
}

variable "runners" {
  description = "How many Macs run customers' jobs."
  type        = number
  default     = 9
}

scaleway {
  zones       = ["fr-par-1", "fr-par-3"]
  pool_prefix = "pool-"
}

kubernetes {
  api_server   = "https://api.acme.dev:6443" # as the hosts reach it
  namespace    = "macfleet"
  label_prefix = "acme.dev"
}

ssh {
  user        = "m1"
  private_key = secret("k8s://macfleet/fleet-ssh/id_ed25519")
}

# Each host downloads Tart itself; the kubelet is pushed from this machine.
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

# Every fleet inherits these; a fleet overrides them field by field.
defaults {
  os = "Tahoe"

  hostname {}
  power {}
  auto_login {}

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

  vm_firewall {
    anchor     = "acme.runners"
    vm_sources = ["192.168.64.0/22"]
    block      = ["10.0.0.0/8", "172.16.0.0/12", "169.254.0.0/16"]
  }

  rollout {                 # how a run goes over hosts that do work: docs/rollout.md
    max_unavailable = "30%" # of those that are Ready, rounded down, at least one
    canary          = 1     # goes first, and alone
    failure_budget  = 1     # failed hosts that do not stop the rest
  }
}

# A builder's kubelet leaves virtual machines alone that no Pod is behind.
fleet "builders" {
  group "m2" {
    type     = "M2-L"
    replicas = 2
  }

  github_runner {}
}
