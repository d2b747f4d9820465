# Three fleets of Mac minis: Macs for services, runners for customers' jobs, and
# builders that bake virtual machine images. Try it without an account:
#
#   macfleet -C examples/three-fleets -e production --sandbox plan

macfleet {
  required_version = ">= 0.1.0"
  name             = "acme"
}

variable "runners" {
  description = "How many Macs run customers' jobs."
  type        = number
  default     = 9
}

environment "production" {
  cluster_uid = "0b1f4c52-6a0e-4d0b-9a55-3f1f5d2c7e10"
  project_id  = "5d6e8f70-1b2c-4d3e-8f90-a1b2c3d4e5f6"
}

scaleway {
  zones       = ["fr-par-1", "fr-par-3"]
  pool_prefix = "acme-pool-"
}

kubernetes {
  context      = "acme-${env.name}"
  api_server   = "https://api.acme.dev:6443"
  namespace    = "macfleet"
  label_prefix = "acme.dev"
}

ssh {
  user        = "m1"
  private_key = secret("k8s://macfleet/fleet-ssh/id_ed25519")
}

# Every fleet inherits these; a fleet overrides them field by field.
defaults {
  os = "Tahoe"

  hostname {}
  power {}
}
