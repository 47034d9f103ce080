// Secrets that must not be written where people and programs read on.
#ifndef REGATTA_BASE_REDACT_H_
#define REGATTA_BASE_REDACT_H_

#include <string>
#include <string_view>

namespace regatta {

// `text` with "..." for the secret part of joining tokens (rgt1-SECRET-...) and
// for the body of private keys in PEM, also of one that is cut off.
std::string Redact(std::string_view text);

}  // namespace regatta

#endif  // REGATTA_BASE_REDACT_H_
