// Secrets: random bytes that nobody can guess, and what proves that somebody
// knew one (HMAC-SHA-256), through OpenSSL.
#ifndef REGATTA_BASE_SECRET_H_
#define REGATTA_BASE_SECRET_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace regatta {

// From the system's entropy.
std::string RandomSecret(size_t bytes);

// 32 bytes.
std::string HmacSha256(std::string_view key, std::string_view message);

// Takes the same time wherever they differ.
bool SameSecret(std::string_view a, std::string_view b);

}  // namespace regatta

#endif  // REGATTA_BASE_SECRET_H_
