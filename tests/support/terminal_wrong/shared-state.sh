# The default is mended; the caller's list and the discounts are still shared.
sed -i 's/goods=\[\]):/goods=None):/; s/self.goods = goods/self.goods = goods or []/' shop.py
