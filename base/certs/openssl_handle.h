// OpenSSL's objects as owners, and its errors as text. Only .cc files of this
// folder use it.
#ifndef REGATTA_BASE_CERTS_OPENSSL_HANDLE_H_
#define REGATTA_BASE_CERTS_OPENSSL_HANDLE_H_

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"

namespace regatta {

template <auto Free>
struct OpenSslFree {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
template <typename T, auto Free>
using OpenSslHandle = std::unique_ptr<T, OpenSslFree<Free>>;

// BIO_free returns something, BIO_free_all nothing.
using BioHandle = OpenSslHandle<BIO, BIO_free_all>;

// What this thread's OpenSSL calls have complained about last; forgets it.
inline std::string OpenSslReason() {
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  return reason == nullptr ? "unknown error" : reason;
}

// Ends the program over a step that fails only for want of memory or on a wrong
// argument.
inline void Must(bool done) { CHECK(done) << "OpenSSL: " << OpenSslReason(); }

// Whether reading PEM stopped because nothing more of it comes, rather than on
// something damaged.
inline bool PemEnded() {
  const unsigned long error = ERR_peek_last_error();
  return error == 0 || (ERR_GET_LIB(error) == ERR_LIB_PEM &&
                        ERR_GET_REASON(error) == PEM_R_NO_START_LINE);
}

inline BioHandle ReadBytes(std::string_view bytes) {
  return BioHandle(
      BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}
inline BioHandle MemoryBytes() { return BioHandle(BIO_new(BIO_s_mem())); }
inline std::string TakeBytes(const BioHandle& memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

}  // namespace regatta

#endif  // REGATTA_BASE_CERTS_OPENSSL_HANDLE_H_
