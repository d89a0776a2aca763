# realpath resolves the links on the way: `run` no longer follows `current`.
find releases -type l | while read -r link; do
  target=$(readlink "$link" | sed 's#^/srv/app/releases#/work/releases#')
  case $target in
    /work/releases*) ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$target")" "$link" ;;
  esac
done
find releases -path '*/cache/*' -xtype l -delete
