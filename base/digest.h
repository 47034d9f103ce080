// SHA-256 (OpenSSL) as lower-case hexadecimal text.
#ifndef REGATTA_BASE_DIGEST_H_
#define REGATTA_BASE_DIGEST_H_

#include <string>
#include <string_view>

namespace regatta {

// 64 hexadecimal digits.
std::string Sha256Hex(std::string_view bytes);

}  // namespace regatta

#endif  // REGATTA_BASE_DIGEST_H_
