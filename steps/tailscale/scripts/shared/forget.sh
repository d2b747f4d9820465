# forget_former deletes the files from before a roll. It renames their folder first, so that an undo never finds half of them: the new
# name is that of an unfinished copy, which nothing uses.
forget_former() {
  rm -rf "$former.new"
  [ ! -d "$former" ] || mv "$former" "$former.new"
  rm -rf "$former.new"
  sync
}
