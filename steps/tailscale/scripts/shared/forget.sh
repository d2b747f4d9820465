# forget_former deletes the files from before a roll. They get another name first: of a deletion that was killed nothing is put back.
forget_former() {
  [ ! -d "$former" ] || { rm -rf "$former.new" && mv "$former" "$former.new"; }
  rm -rf "$former.new"
  sync
}
