// SPDX-License-Identifier: Apache-2.0
#include "stdlib/tile/schedule.hpp"

namespace ikat::stdlib {

using Number = Leaf<std::uint32_t>;

EqualShares::EqualShares(const Number& all, const Number& count)
    : each_(value(all / count)), more_(value(all % count)) {}

Number EqualShares::begin(const Word& number) const {
    const auto n = word(number);
    return value(n * each_ + min(n, more_));
}

Number EqualShares::owner(const Word& of) const {
    const auto at = word(of), larger = value(more_ * (each_ + 1u));  // as many are in shares of one more
    return value(select(at < larger, at / (each_ + 1u), more_ + (at - larger) / max(each_, 1u)));
}

PartOfK part_of_k(const Word& slices, const Word& part, const Word& parts) {
    const auto all = word(slices), count = word(parts), number = word(part);
    const EqualShares shares(all, count);
    const auto first = shares.begin(number);
    const auto end = shares.begin(value(number + 1u));
    return {first, value(end - first)};
}

Number SharesOfTile::number(const Word& i) const {
    const auto at = word(i);
    return value(select(at == 0u, first_number, (first_worker + at) * 2u));
}

StreamK::StreamK(const Word& streamed, const Word& slices, const Word& workers)
    : streamed_(word(streamed)),
      slices_(word(slices)),
      workers_(word(workers)),
      shares_(value(streamed_ * slices_), workers_) {}

SharesOfTile StreamK::shares_of(const Word& tile) const {
    const auto begin = value(word(tile) * slices_);
    const auto first = shares_.owner(begin);
    const auto last = shares_.owner(value(begin + (slices_ - 1u)));
    const auto is_later = value(shares_.begin(first) < begin);  // the first worker has begun with another tile
    return {first, value(last - first + 1u), value(first * 2u + select(is_later, 1u, 0u))};
}

StreamK::Work::Work(const StreamK& of, const Number& worker, const Number& tiles)
    : of_(of),
      worker_(worker),
      begin_(of.shares_.begin(worker)),
      end_(of.shares_.begin(value(worker + 1u))),
      first_tile_(value(begin_ / of.slices_)),
      last_tile_(value((max(end_, 1u) - 1u) / of.slices_)),
      next_(value(of.streamed_ + worker)),
      shared_(value(select(begin_ < end_, last_tile_ - first_tile_ + 1u, 0u))),
      whole_(value(select(next_ < tiles, (tiles - next_ - 1u) / of.workers_ + 1u, 0u))) {}

TileShare StreamK::Work::share(const Number& i) const {
    const auto is_shared = value(i < shared_);
    const auto tile = value(select(is_shared, first_tile_ + i, next_ + (i - shared_) * of_.workers_));
    const auto first = value(select(is_shared & (i == 0u), begin_ - first_tile_ * of_.slices_, 0u));
    const auto end = value(select(i + 1u == shared_, end_ - last_tile_ * of_.slices_, of_.slices_));
    const PartOfK part{first, value(end - first)};
    return {tile, part, value(part.count == of_.slices_), value(worker_ * 2u + select(i == 0u, 0u, 1u))};
}

}  // namespace ikat::stdlib
