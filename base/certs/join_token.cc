#include "base/certs/join_token.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/secret.h"

namespace regatta {
namespace {

constexpr std::string_view kPrefix = "rgt1-";
constexpr size_t kSecretDigits = 32;
constexpr size_t kFingerprintDigits = 64;

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

std::string JoinToken::Text() const {
  return absl::StrCat("rgt1-", secret, "-", ca_fingerprint);
}

std::string JoinToken::Id() const { return Sha256Hex(secret); }

}  // namespace regatta
