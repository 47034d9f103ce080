// What tests say about statuses; GoogleTest 1.12 has no matchers for them.
#ifndef REGATTA_TESTS_COMPILER_STATUS_TEXT_H_
#define REGATTA_TESTS_COMPILER_STATUS_TEXT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace regatta {

inline std::string StatusText(const absl::Status& status) {
  return status.ToString();
}
template <typename T>
std::string StatusText(const absl::StatusOr<T>& result) {
  return result.status().ToString();
}

}  // namespace regatta

#define ASSERT_STATUS_OK(expr) ASSERT_TRUE((expr).ok()) << StatusText(expr)

#endif  // REGATTA_TESTS_COMPILER_STATUS_TEXT_H_
