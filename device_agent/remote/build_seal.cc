#include "device_agent/remote/build_seal.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "device_agent/remote/builder_key.h"

namespace regatta {
namespace {

std::string SealedText(const std::string& request,
                       const v1::BuildAnswer& answer) {
  return absl::StrCat("regatta build answer 1\n", Sha256Hex(request), "\n",
                      Sha256Hex(answer.response()), "\n", answer.builder(),
                      "\n", answer.digest(), "\n", answer.file_bytes(), "\n");
}

}  // namespace

void SealAnswer(const SigningKey& key, const std::string& request,
                v1::BuildAnswer& answer) {
  answer.set_public_key(key.public_key());
  answer.set_signature(key.Sign(SealedText(request, answer)));
}

absl::Status CheckSeal(const std::vector<std::string>& trusted,
                       const std::string& request,
                       const v1::BuildAnswer& answer) {
  if (std::find(trusted.begin(), trusted.end(), answer.public_key()) ==
      trusted.end()) {
    return absl::PermissionDeniedError(
        absl::StrCat("builder ", answer.builder(), " with key ",
                     KeyName(answer.public_key()),
                     " is not one that --trust-builder names"));
  }
  if (!VerifySignature(answer.public_key(), SealedText(request, answer),
                       answer.signature())) {
    return absl::PermissionDeniedError(absl::StrCat(
        "what came from builder ", answer.builder(),
        " is not signed by its key for what was asked: it was changed, "
        "belongs to another request, or is not the builder's"));
  }
  if (answer.file_bytes() < 0 || answer.file_bytes() > kMaxBlobBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the module of builder ", answer.builder(), " has ",
        answer.file_bytes(), " bytes, at most ", kMaxBlobBytes, " are taken"));
  }
  return absl::OkStatus();
}

}  // namespace regatta
