/* Included by upstream's config.h, as MBEDTLS_USER_CONFIG_FILE: 64-bit limbs on every processor, and no assembly. */
#undef MBEDTLS_HAVE_ASM
#undef MBEDTLS_PADLOCK_C
#undef MBEDTLS_AESNI_C
#define MBEDTLS_HAVE_INT64
