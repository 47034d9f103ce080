// Decimal numbers in text.
#ifndef REGATTA_BASE_DECIMAL_H_
#define REGATTA_BASE_DECIMAL_H_

#include <cmath>
#include <string_view>

#include "absl/strings/numbers.h"
#include "base/strings.h"

namespace regatta {

// `text` as a whole is a finite decimal number ("1", "-0.5", "1e-3"): sets
// `value`. False: it is none, and `value` is not to be used. Hexadecimal, which
// absl::SimpleAtod takes, is none.
inline bool ParseDecimal(std::string_view text, double* value) {
  return text.find_first_of("xX") == std::string_view::npos &&
         absl::SimpleAtod(ToAbsl(text), value) && std::isfinite(*value);
}

}  // namespace regatta

#endif  // REGATTA_BASE_DECIMAL_H_
