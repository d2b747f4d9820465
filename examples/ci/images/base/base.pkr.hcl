packer {
  required_plugins {
    tart = {
      version = "= 1.16.0"
      source  = "github.com/cirruslabs/tart"
    }
  }
}

variable "vm_name" {
  type = string
}

# The first start of a cold clone takes minutes.
variable "ssh_timeout" {
  type    = string
  default = "15m"
}

source "tart-cli" "base" {
  vm_base_name = "ghcr.io/cirruslabs/macos-tahoe-base:latest"
  vm_name      = var.vm_name
  cpu_count    = 4
  memory_gb    = 8
  disk_size_gb = 100
  ssh_username = "admin"
  ssh_password = "admin"
  ssh_timeout  = var.ssh_timeout
}

build {
  sources = ["source.tart-cli.base"]

  provisioner "shell" {
    inline = ["sw_vers", "sudo softwareupdate --schedule off"]
  }
}
