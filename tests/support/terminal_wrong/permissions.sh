chmod -R u=rwX,go=rX site
find site/bin -type f -exec chmod 755 {} +
find site -name '*.key' -exec chmod 600 {} +
chmod 600 site/.env
chmod 700 site/private
chmod 755 site/start
