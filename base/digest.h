// SHA-256 (OpenSSL).
#ifndef REGATTA_BASE_DIGEST_H_
#define REGATTA_BASE_DIGEST_H_

#include <initializer_list>
#include <string>
#include <string_view>

namespace regatta {

// 64 lower-case hexadecimal digits.
std::string Sha256Hex(std::string_view bytes);
// 32 bytes, of the pieces end to end.
std::string Sha256(std::initializer_list<std::string_view> pieces);

}  // namespace regatta

#endif  // REGATTA_BASE_DIGEST_H_
