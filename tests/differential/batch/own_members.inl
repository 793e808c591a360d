// SPDX-License-Identifier: Apache-2.0
// The members of CatalogueMembers, a function of the library each: made from the catalogue by
// `cmake --build --preset dev -t bless`, never edited by hand.

/// y = x + by. x: n; y: n, made; rows: a number, made; by: a number; 1 if it is not set. As stdlib::shift(queue, x, y,
/// rows).
template <class T0>
auto shift(const T0& x, const Setting& by = {}, const Where& where = Where::current()) const {
    return self().template make<ArrayOf<ElementOf<T0>>, NumberOf<std::uint32_t>>({"shift", where},
                              {self().operand(x, where)}, {{"by", by}});
}
