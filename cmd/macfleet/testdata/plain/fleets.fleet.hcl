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
}

fleet "builders" {
  group "m2" {
    type     = "M2-L"
    replicas = 2
  }
}
