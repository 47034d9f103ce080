#include "base/certs/join_token.h"

#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/replace_file.h"
#include "base/secret.h"

namespace regatta {
namespace {

constexpr std::string_view kPrefix = "rgt1-";
constexpr size_t kSecretDigits = 32;
constexpr size_t kFingerprintDigits = 64;
constexpr size_t kMaxFileBytes = 4096;

bool IsHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == text.npos;
}

}  // namespace

JoinToken JoinToken::Make(std::string ca_fingerprint) {
  JoinToken token;
  token.secret = absl::BytesToHexString(RandomSecret(kSecretDigits / 2));
  token.ca_fingerprint = std::move(ca_fingerprint);
  return token;
}

absl::StatusOr<JoinToken> JoinToken::Parse(std::string_view text) {
  JoinToken token;
  const size_t dash = kPrefix.size() + kSecretDigits;
  if (text.size() == dash + 1 + kFingerprintDigits &&
      text.starts_with(kPrefix) && text[dash] == '-') {
    token.secret = text.substr(kPrefix.size(), kSecretDigits);
    token.ca_fingerprint = text.substr(dash + 1);
    if (IsHex(token.secret) && IsHex(token.ca_fingerprint)) return token;
  }
  return absl::InvalidArgumentError(
      "this is no join token as `regatta certs token` prints it "
      "(rgt1-SECRET-FINGERPRINT)");
}

absl::StatusOr<JoinToken> JoinToken::Read(const std::string& where) {
  const bool file = where.starts_with('@');
  if (!file && where != "-") return Parse(where);
  const auto text =
      file ? ReadSmallFile(where.substr(1), kMaxFileBytes)
           : ReadSmallFile(STDIN_FILENO, "standard input", kMaxFileBytes);
  if (!text.ok()) {
    return absl::FailedPreconditionError(text.status().message());
  }
  const absl::string_view token = absl::StripAsciiWhitespace(*text);
  return Parse({token.data(), token.size()});
}

std::string JoinToken::Text() const {
  return absl::StrCat("rgt1-", secret, "-", ca_fingerprint);
}

std::string JoinToken::Id() const { return Sha256Hex(secret); }

}  // namespace regatta
