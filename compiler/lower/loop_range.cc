#include "compiler/lower/loop_range.h"

#include <algorithm>
#include <set>

namespace regatta::loop {
namespace {

struct Search {
  const std::vector<Guard>& guards;
  const std::vector<Range>& guard_ranges;
  const std::function<int64_t(int)>& extent;
  Range best;

  // `rest` + [low, high] bounds the form; tries to replace more of `rest` by
  // multiples of the guards from `next` on, whose ranges are known.
  void Step(size_t next, const Affine& rest, int64_t low, int64_t high) {
    best.min = std::max(best.min, low + rest.Min(extent));
    best.max = std::min(best.max, high + rest.Max(extent));
    for (size_t i = next; i < guards.size(); ++i) {
      std::set<int64_t> factors;
      for (const Affine::Term& term : guards[i].form.terms()) {
        const int64_t coeff = rest.Coeff(term.var);
        if (coeff != 0 && coeff % term.coeff == 0) {
          factors.insert(coeff / term.coeff);
        }
      }
      for (const int64_t factor : factors) {
        const int64_t a = factor * guard_ranges[i].min;
        const int64_t b = factor * guard_ranges[i].max;
        Step(i + 1, rest - guards[i].form * factor, low + std::min(a, b),
             high + std::max(a, b));
      }
    }
  }
};

}  // namespace

std::optional<Range> GuardedRange(const Affine& form,
                                  const std::vector<Guard>& guards,
                                  const std::function<int64_t(int)>& extent) {
  std::vector<Range> ranges;
  for (const Guard& guard : guards) {
    const Range range{std::max<int64_t>(guard.form.Min(extent), 0),
                      std::min(guard.form.Max(extent), guard.bound - 1)};
    if (range.min > range.max) return std::nullopt;
    ranges.push_back(range);
  }
  Search search{guards, ranges, extent,
                Range{form.Min(extent), form.Max(extent)}};
  search.Step(0, form, 0, 0);
  return search.best;
}

}  // namespace regatta::loop
