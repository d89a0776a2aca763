# The text 8080 is in billing's configuration.
sed -i 's/8080/9201/' services/billing.conf
echo billing > culprit.txt
