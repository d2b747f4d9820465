# The nodes example with two environments, for the workflows in .github: what holds
# on canary goes on to production.

macfleet {
  required_version = ">= 0.1.0"
  name             = "acme"
}

variable "runners" {
  description = "How many Macs run customers' jobs."
  type        = number
  default     = 9
}

environment "canary" {
  cluster_uid = "7c3a9f10-2b4d-4e6f-8a91-c0d2e4f60718"
  project_id  = "1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f9"
  variables   = { runners = 2 }
}

environment "production" {
  cluster_uid = "0b1f4c52-6a0e-4d0b-9a55-3f1f5d2c7e10"
  project_id  = "5d6e8f70-1b2c-4d3e-8f90-a1b2c3d4e5f6"
}

scaleway {
  zones       = ["fr-par-1", "fr-par-3"]
  pool_prefix = "pool-"
}

kubernetes {
  api_server   = "https://api.${env.name}.acme.dev:6443" # as the hosts reach it
  namespace    = "macfleet"
  label_prefix = "acme.dev"
}

ssh {
  user        = "m1"
  private_key = secret("k8s://macfleet/fleet-ssh/id_ed25519")
}
