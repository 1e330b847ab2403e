/** `npm run build`: installs if needed, then compiles `src` into `dist`. */
import { build, checkNode, install } from './prepare.js';

checkNode();
install();
build();
