cat > rotate.sh <<'SH'
f=$1
keep=$2
[ -s $f ] || exit 0
for i in $(seq $keep -1 3); do
  [ -e $f.$((i - 1)).gz ] && mv $f.$((i - 1)).gz $f.$i.gz
done
[ -e $f.1 ] && gzip -c $f.1 > $f.2.gz
mv $f $f.1
touch $f
SH
