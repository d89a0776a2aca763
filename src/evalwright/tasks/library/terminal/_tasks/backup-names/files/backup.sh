#!/bin/bash
# Copy all .txt files: backup.sh SOURCE TARGET
cd $1
count=0
for file in $(find . -name "*.txt"); do
  mkdir -p $2/$(dirname $file)
  cp $file $2/$file
  count=$((count + 1))
done
echo $count
