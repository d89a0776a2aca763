"""What the shop can do."""

from shop.customers import Customer

ada = Customer("Ada")
print(ada.order(1000).pay())
print(ada.order(550).pay())
print(ada.tax())
