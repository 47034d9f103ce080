// Names that people give to things: agents, classes, labs.
#ifndef REGATTA_BASE_NAME_CHECK_H_
#define REGATTA_BASE_NAME_CHECK_H_

#include <string_view>

#include "absl/status/status.h"

namespace regatta {

// InvalidArgument unless `text` is 1 to 128 letters, digits, '-', '_' and '.'.
// `what` is named in the error.
absl::Status CheckName(std::string_view what, std::string_view text);

}  // namespace regatta

#endif  // REGATTA_BASE_NAME_CHECK_H_
