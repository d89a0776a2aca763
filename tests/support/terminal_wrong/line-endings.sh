find project -type f -exec sed -i 's/\r$//' {} +
find project -name '*.bat' -exec sed -i 's/$/\r/' {} +
