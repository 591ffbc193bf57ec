/* Without the ioctl that estimates entropy: how random_device is asked for it differs between systems. */
