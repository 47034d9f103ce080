#include "base/certs/private_key.h"

#include <fcntl.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/certs/openssl_handle.h"
#include "base/check.h"
#include "base/replace_file.h"
#include "base/status_macros.h"
#include "base/system_error.h"
#include "base/unique_fd.h"

namespace regatta {
namespace {

// An encrypted key must be refused, not asked about on the terminal.
int NoPassword(char*, int, int, void*) { return -1; }

}  // namespace

PrivateKey PrivateKey::Generate() {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  CHECK(key != nullptr) << "OpenSSL makes no key: " << OpenSslReason();
  return PrivateKey(std::shared_ptr<EVP_PKEY>(key, EVP_PKEY_free));
}

absl::StatusOr<PrivateKey> PrivateKey::FromPem(std::string_view pem) {
  const BioHandle bytes = ReadBytes(pem);
  EVP_PKEY* key =
      PEM_read_bio_PrivateKey(bytes.get(), nullptr, NoPassword, nullptr);
  if (key == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("no private key in PEM: ", OpenSslReason()));
  }
  PrivateKey found(std::shared_ptr<EVP_PKEY>(key, EVP_PKEY_free));
  if (!IsP256(key)) {
    return absl::InvalidArgumentError("the key is not ECDSA on P-256");
  }
  return found;
}

std::string PrivateKey::Pem() const {
  const BioHandle bytes = MemoryBytes();
  CHECK(PEM_write_bio_PrivateKey(bytes.get(), key_.get(), nullptr, nullptr, 0,
                                 nullptr, nullptr) == 1)
      << OpenSslReason();
  return TakeBytes(bytes);
}

bool IsP256(EVP_PKEY* key) {
  char group[32] = "";
  size_t size = 0;
  EVP_PKEY_get_utf8_string_param(key, "group", group, sizeof group, &size);
  ERR_clear_error();
  return EVP_PKEY_get_id(key) == EVP_PKEY_EC &&
         std::string_view(group, size) == "prime256v1";
}

absl::StatusOr<PrivateKey> ReadPrivateKey(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) {
    const int error = errno;
    const absl::Status status = SystemError(path, "read", error);
    return error == ENOENT ? absl::NotFoundError(status.message()) : status;
  }
  const auto wrong = [&path](const auto&... what) {
    return absl::FailedPreconditionError(absl::StrCat(path, ": ", what...));
  };
  struct stat file = {};
  if (fstat(fd.get(), &file) != 0) return SystemError(path, "read", errno);
  if (!S_ISREG(file.st_mode)) return wrong("is no file");
  if ((file.st_mode & 077) != 0) {
    return wrong("others may read the private key (mode ",
                 absl::StrFormat("%04o", file.st_mode & 07777),
                 "); chmod 600 it");
  }
  ASSIGN_OR_RETURN(const std::string pem, ReadSmallFile(fd.get(), path));
  auto key = PrivateKey::FromPem(pem);
  if (!key.ok()) return wrong(key.status().message());
  return key;
}

}  // namespace regatta
